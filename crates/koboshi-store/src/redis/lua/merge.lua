-- Sets records, each only if it is still what the caller merged with, and announces them.
-- The merge itself is the core's and happens at the caller.
-- KEYS: the records, what was set aside (newest first), the channel (named here so that it is built in one place).
-- ARGV: the most bodies set aside, the most bytes of them, and for each record:
--   slot, expected body ('' where there is none), new body, why the old body is set aside ('' where it is not).
-- Returns slot and present body, in turn, of those that changed under the caller.
local function trim()
  redis.call('LTRIM', KEYS[2], 0, tonumber(ARGV[1]) - 1)
  local bytes = 0
  for place, body in ipairs(redis.call('LRANGE', KEYS[2], 0, -1)) do
    bytes = bytes + #body
    if bytes > tonumber(ARGV[2]) then
      -- With nothing before it, this empties the list: from the second place to the first.
      redis.call('LTRIM', KEYS[2], place == 1 and 1 or 0, place == 1 and 0 or place - 2)
      return
    end
  end
end
local lost = {}
for i = 3, #ARGV, 4 do
  local slot, expected, new, why = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local present = redis.call('HGET', KEYS[1], slot) or ''
  if present ~= expected then
    lost[#lost + 1] = slot
    lost[#lost + 1] = present
  else
    if why ~= '' then
      redis.call('LPUSH', KEYS[2], slot .. '\n' .. why .. '\n' .. present)
      trim()
    end
    redis.call('HSET', KEYS[1], slot, new)
    redis.call('PUBLISH', KEYS[3], slot)
  end
end
return lost
