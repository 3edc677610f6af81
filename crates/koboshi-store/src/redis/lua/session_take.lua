-- Takes a session, or makes one, by the server's clock. KEYS: the session, the last fence, the owned sessions.
-- ARGV: owner, lease in ms, id, `new` to make one.
-- Returns {0} if there is none (or, for a new one, if there is one already), {1, owner} if it is held, {2, fence, was lost, was restarted} if it is
-- taken, {3} if it was forgotten.
local there = redis.call('EXISTS', KEYS[1]) == 1
if (ARGV[4] == 'new') == there then
  return {0}
end
if there and redis.call('HEXISTS', KEYS[1], 'forgotten') == 1 then
  return {3}
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local owner = redis.call('HGET', KEYS[1], 'owner')
local held = redis.call('ZSCORE', KEYS[3], ARGV[3])
if owner and held and tonumber(held) > now then
  return {1, owner}
end
local fence = math.max(tonumber(redis.call('GET', KEYS[2]) or '0') + 1, now)
local text = string.format('%.0f', fence)
redis.call('SET', KEYS[2], text)
-- A server that was started again, or a replica in its place, may lack what was written last. Where it may not be asked, nothing is known of that.
local info = redis.pcall('INFO', 'server')
local server = type(info) == 'string' and string.match(info, 'run_id:(%w+)') or ''
local before = redis.call('HGET', KEYS[1], 'server')
redis.call('HSET', KEYS[1], 'fence', text, 'owner', ARGV[1], 'server', server)
redis.call('ZADD', KEYS[3], now + tonumber(ARGV[2]), ARGV[3])
return {2, text, owner and owner ~= '' and 1 or 0, before and before ~= server and 1 or 0}
