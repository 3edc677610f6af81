-- wrk: one request again and again. BODY, KEY and HEADERS (one a line) come from the environment; the figures go out as
-- one line of JSON.
wrk.method = "POST"
wrk.headers["content-type"] = "application/json"
wrk.headers["authorization"] = "Bearer " .. os.getenv("KEY")
for line in os.getenv("HEADERS"):gmatch("[^\n]+") do
  local name, value = line:match("^(.-): (.*)$")
  wrk.headers[name] = value
end
wrk.body = os.getenv("BODY")

function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format('\nFIGURES {"requests":%d,"seconds":%.6f,"p50_us":%.1f,"p99_us":%.1f,"bad":%d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50), latency:percentile(99),
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
