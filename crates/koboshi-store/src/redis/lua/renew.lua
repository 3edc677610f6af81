-- Renews a lease (ttl in ms) or gives it back (ttl 0), if it is still the caller's. KEYS: the lease. ARGV: fence, ttl.
-- Returns 1 if it was.
local held = redis.call('GET', KEYS[1])
if not held or string.match(held, '^(%d+) ') ~= ARGV[1] then
  return 0
end
if ARGV[2] == '0' then
  return redis.call('DEL', KEYS[1])
end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
