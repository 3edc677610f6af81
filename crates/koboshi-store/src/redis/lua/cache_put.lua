-- Keeps an answer within a bound of bytes: what has ended goes, then what ends soonest.
-- KEYS: the bodies, their ends (ms), the bytes of all. ARGV: key, body, ttl in ms, the most bytes.
-- With an empty key it only sweeps. Returns 1 if the answer was kept, or how many were swept.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('DEL', KEYS[2], KEYS[3])
end
local function drop(key)
  redis.call('DECRBY', KEYS[3], redis.call('HSTRLEN', KEYS[1], key))
  redis.call('HDEL', KEYS[1], key)
  redis.call('ZREM', KEYS[2], key)
end
local ended = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now)
for _, key in ipairs(ended) do
  drop(key)
end
if ARGV[1] == '' then
  return #ended
end
drop(ARGV[1])
local size, max = #ARGV[2], tonumber(ARGV[4])
if size > max then
  return 0
end
while tonumber(redis.call('GET', KEYS[3]) or '0') + size > max do
  local first = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
  if not first then
    redis.call('SET', KEYS[3], 0)
    break
  end
  drop(first)
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[2], now + tonumber(ARGV[3]), ARGV[1])
redis.call('INCRBY', KEYS[3], size)
return 1
