-- Adds entries to the journal. KEYS: the stream. ARGV: the most entries ('' for as many as come), then the bodies.
for i = 2, #ARGV do
  if ARGV[1] == '' then
    redis.call('XADD', KEYS[1], '*', 'body', ARGV[i])
  else
    redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], '*', 'body', ARGV[i])
  end
end
return #ARGV - 1
