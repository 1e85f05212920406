// For `--require`: at SIGUSR2 the wall clock goes back by an hour, as when a machine is corrected after another system ran on it.
const { now } = Date
process.on('SIGUSR2', () => {
  Date.now = () => now() - 3_600_000
  process.stderr.write('the clock was set back\n')
})
