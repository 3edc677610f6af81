-- The answer that was kept, if it still is. KEYS: the bodies, their ends (ms). ARGV: key.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local ends = redis.call('ZSCORE', KEYS[2], ARGV[1])
if not ends or tonumber(ends) <= now then
  return false
end
return redis.call('HGET', KEYS[1], ARGV[1])
