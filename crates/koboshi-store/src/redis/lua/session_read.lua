-- A session as it is, by the server's clock. KEYS: the session, its events, the owned sessions. ARGV: id, the epoch and the number that the caller has.
-- Returns nothing if there is none, else whether it was forgotten, number, epoch, state (none where the events go on with what the caller has), owner or '',
-- whether that one holds it, and the events.
local known = redis.call('HMGET', KEYS[1], 'seq', 'epoch', 'owner', 'forgotten')
if known[4] then
  return {1, 0, '', false, '', 0, {}}
end
if not known[1] then
  return false
end
local seq, after = tonumber(known[1]), tonumber(ARGV[3])
local epoch, owner = known[2] or '', known[3] or ''
local goes_on = epoch ~= '' and epoch == ARGV[2]
if goes_on and seq > after then
  goes_on = redis.call('ZCOUNT', KEYS[2], after + 1, after + 1) > 0
end
local head, from = false, '(' .. ARGV[3]
if not goes_on then
  head, from = redis.call('HGET', KEYS[1], 'head'), '-inf'
end
local events = {}
if not goes_on or seq > after then
  events = redis.call('ZRANGEBYSCORE', KEYS[2], from, '+inf')
end
local held = 0
local till = owner ~= '' and redis.call('ZSCORE', KEYS[3], ARGV[1])
if till then
  local time = redis.call('TIME')
  local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
  held = tonumber(till) > now and 1 or 0
end
return {0, seq, epoch, head, owner, held, events}
