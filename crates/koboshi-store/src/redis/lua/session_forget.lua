-- Forgets a session and keeps that it was forgotten. KEYS: the session, its events, the owned sessions, the changed ones, the last change,
-- the channel on which it is announced.
-- ARGV: id, for how long in ms. Returns 1 if there was one.
local there = redis.call('EXISTS', KEYS[1]) == 1 and redis.call('HEXISTS', KEYS[1], 'forgotten') == 0
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('ZREM', KEYS[3], ARGV[1])
redis.call('HSET', KEYS[1], 'forgotten', '1')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('ZADD', KEYS[4], redis.call('INCR', KEYS[5]), ARGV[1])
redis.call('PUBLISH', KEYS[6], ARGV[1])
return there and 1 or 0
