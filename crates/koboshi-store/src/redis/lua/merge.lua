-- Sets records, each only if it is still what the caller merged with, and tells the others.
-- The merge itself is the core's and happens at the caller.
-- KEYS: the records, the quarantine, the channel (named here so that it is built in one place).
-- ARGV: for each record: slot, expected body ('' where there is none), new body, '1' to set the old body aside.
-- Returns slot and present body, in turn, of those that changed under the caller.
local lost = {}
for i = 1, #ARGV, 4 do
  local slot, expected, new = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local present = redis.call('HGET', KEYS[1], slot) or ''
  if present ~= expected then
    lost[#lost + 1] = slot
    lost[#lost + 1] = present
  else
    if ARGV[i + 3] == '1' then
      local time = redis.call('TIME')
      redis.call('HSET', KEYS[2], slot .. ' at ' .. time[1] .. '.' .. time[2], present)
    end
    redis.call('HSET', KEYS[1], slot, new)
    redis.call('PUBLISH', KEYS[3], slot)
  end
end
return lost
