// Runs in each of vitest's workers. Ends it, and so all that its tests have started, if the run was killed: vitest itself leaves
// such a worker behind.
if (process.listenerCount('disconnect') === 0)
  process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'))
