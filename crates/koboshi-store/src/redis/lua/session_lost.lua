-- Sessions whose lease is over. KEYS: the owned sessions. ARGV: how many, what the name of a session begins with. Forgets those that are gone.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local lost = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])) do
  if redis.call('EXISTS', ARGV[2] .. id) == 1 then
    lost[#lost + 1] = id
  else
    redis.call('ZREM', KEYS[1], id)
  end
end
return lost
