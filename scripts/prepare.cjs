// The first `npx relay` in a clone links the package, which npm prepares again. `npm ci` has built it already.
if (process.env.npm_command !== 'exec')
  require('node:child_process').execSync('npm run build', { stdio: 'inherit' })
