-- Writes to a session, if its fence and its number are those. KEYS: the session, its events, the owned sessions, the changed ones, the last change,
-- the channel on which it is announced.
-- ARGV: id, fence, number before, number after, lease in ms, ttl in ms, first number to keep, `kept`, `given back` or `handed over`, head or '', its epoch, then number and body of each event.
-- Returns 0 if there is none, 1 if it is another one's or has another number, 2 if it was written, 3 if it was forgotten.
if redis.call('EXISTS', KEYS[1]) == 0 then
  return 0
end
if redis.call('HEXISTS', KEYS[1], 'forgotten') == 1 then
  return 3
end
local known = redis.call('HMGET', KEYS[1], 'fence', 'seq', 'owner')
if known[1] ~= ARGV[2] or (known[2] or '0') ~= ARGV[3] or not known[3] or known[3] == '' then
  return 1
end
redis.call('HSET', KEYS[1], 'seq', ARGV[4])
redis.call('ZADD', KEYS[4], redis.call('INCR', KEYS[5]), ARGV[1])
-- Readers look every moment: what changed long ago is known to them.
redis.call('ZREMRANGEBYRANK', KEYS[4], 0, -10001)
if ARGV[9] ~= '' then
  redis.call('HSET', KEYS[1], 'head', ARGV[9], 'epoch', ARGV[10])
end
for at = 11, #ARGV, 2 do
  redis.call('ZADD', KEYS[2], ARGV[at], ARGV[at] .. ' ' .. ARGV[at + 1])
end
redis.call('PUBLISH', KEYS[6], ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', '(' .. ARGV[7])
redis.call('PEXPIRE', KEYS[1], ARGV[6])
redis.call('PEXPIRE', KEYS[2], ARGV[6])
if ARGV[8] == 'given back' then
  redis.call('HDEL', KEYS[1], 'owner')
  redis.call('ZREM', KEYS[3], ARGV[1])
elseif ARGV[8] == 'handed over' then
  redis.call('HSET', KEYS[1], 'owner', '')
  redis.call('ZADD', KEYS[3], 0, ARGV[1])
else
  local time = redis.call('TIME')
  local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
  redis.call('ZADD', KEYS[3], now + tonumber(ARGV[5]), ARGV[1])
end
return 2
