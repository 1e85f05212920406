-- For wrk: sends one request again and again, each with a number of its own in it.
-- Arguments: a file with the request up to the number, one with the rest, and, for random numbers, up to which.

function init(args)
  head = read(args[1])
  tail = read(args[2])
  upTo = tonumber(args[3])
  sent = 0
  math.randomseed(os.time())
end

function request()
  sent = sent + 1
  return head .. (upTo and math.random(upTo) or sent) .. tail
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"seconds":%f,"p50":%f,"p99":%f,"refused":%d,"failed":%d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1000, latency:percentile(99) / 1000,
    errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end

function read(name)
  local file = assert(io.open(name, "rb"))
  local text = file:read("*a")
  file:close()
  return text
end
