-- Makes the lease of a session last longer. KEYS: the session, the owned sessions. ARGV: id, fence, lease in ms. Returns 1 if it is still the caller's.
local known = redis.call('HMGET', KEYS[1], 'fence', 'owner')
if known[1] ~= ARGV[2] or not known[2] or known[2] == '' then
  return 0
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
redis.call('ZADD', KEYS[2], now + tonumber(ARGV[3]), ARGV[1])
return 1
