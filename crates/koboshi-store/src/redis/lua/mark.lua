-- Leaves a mark on a server that has none, and returns the mark. KEYS: the mark.
-- It is the time of the server: after the server was emptied it is another one.
local mark = redis.call('GET', KEYS[1])
if not mark then
  local time = redis.call('TIME')
  mark = time[1] .. '.' .. time[2]
  redis.call('SET', KEYS[1], mark)
end
return mark
