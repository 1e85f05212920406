-- For wrk: posts one signed delivery again and again, each with an id of its own.
-- Arguments: a file with the request up to the id, and one with its body.

function init(args)
  head = read(args[1])
  tail = "\r\n\r\n" .. read(args[2])
  sent = 0
end

function request()
  sent = sent + 1
  return head .. sent .. tail
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
