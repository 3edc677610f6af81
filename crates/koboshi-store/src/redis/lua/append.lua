-- Adds entries to the journal. KEYS: the stream. ARGV: the most entries, then the bodies.
for i = 2, #ARGV do
  redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], '*', 'body', ARGV[i])
end
return #ARGV - 1
