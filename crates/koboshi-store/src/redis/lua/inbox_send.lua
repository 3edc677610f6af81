-- Puts a message into an inbox and announces it. KEYS: the inbox, the channel. ARGV: the message, how many it holds, for how long in ms, its owner.
redis.call('RPUSH', KEYS[1], ARGV[1])
redis.call('LTRIM', KEYS[1], -tonumber(ARGV[2]), -1)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('PUBLISH', KEYS[2], ARGV[4])
return 1
