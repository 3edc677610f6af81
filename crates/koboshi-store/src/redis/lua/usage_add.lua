-- Adds a batch of usage, once. KEYS: the process, the list of days, then the hashes that are counted in.
-- ARGV: number, ttl of the process in ms, ttl of calls in ms, how many days, the days, then for each count the place of its hash in KEYS, field, value;
-- hashes of calls come with a place below zero. Returns 1, or 0 if the batch is known.
local last = tonumber(redis.call('GET', KEYS[1]) or '0')
if tonumber(ARGV[1]) <= last then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
local days = tonumber(ARGV[4])
for at = 5, 4 + days do
  redis.call('ZADD', KEYS[2], 0, ARGV[at])
end
for at = 5 + days, #ARGV, 3 do
  local place = tonumber(ARGV[at])
  local hash = KEYS[math.abs(place)]
  redis.call('HINCRBY', hash, ARGV[at + 1], ARGV[at + 2])
  if place < 0 then
    redis.call('PEXPIRE', hash, ARGV[3])
  end
end
return 1
