-- Replaces a note if it is still the one that was read. KEYS: the note.
-- ARGV: `known` or '' for none, its body then, the new body, ttl in ms. Returns 1 if it was replaced.
local body = redis.call('GET', KEYS[1])
local is_same
if ARGV[1] == 'known' then
  is_same = body == ARGV[2]
else
  is_same = not body
end
if not is_same then
  return 0
end
redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4])
return 1
