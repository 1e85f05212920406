// For `--require`: at SIGUSR2 the program does nothing else for BUSY_MS, as on a machine whose processors others have.
process.on('SIGUSR2', () => {
  for (const until = performance.now() + Number(process.env.BUSY_MS); performance.now() < until;);
})
