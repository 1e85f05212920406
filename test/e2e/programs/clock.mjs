// Imported into a program under test: moves its wall clock by TEST_CLOCK milliseconds, from the start or, where TEST_CLOCK_AT is
// the name of a signal, once that comes. Timers and performance.now go on as they are, as when a user sets the clock.
const { now } = Date
const set = () => {
  Date.now = () => now() + Number(process.env.TEST_CLOCK)
}
if (process.env.TEST_CLOCK_AT) process.once(process.env.TEST_CLOCK_AT, set)
else set()
