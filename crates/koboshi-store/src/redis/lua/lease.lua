-- Takes a lease by the server's clock. KEYS: the lease, the last fence. ARGV: holder, ttl in ms.
-- Returns the fence, or 0 if it is held.
-- The fence is larger than the last one and than the server's time in ms: after a restart that lost the last fence
-- it still grows, since a fleet does not take a thousand leases a second for long.
if redis.call('EXISTS', KEYS[1]) == 1 then
  return 0
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local fence = math.max(tonumber(redis.call('GET', KEYS[2]) or '0') + 1, now)
local text = string.format('%.0f', fence)
redis.call('SET', KEYS[2], text)
redis.call('SET', KEYS[1], text .. ' ' .. ARGV[1], 'PX', ARGV[2])
return fence
