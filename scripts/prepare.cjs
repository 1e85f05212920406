// Builds after `npm ci`, with the tools that the installer has put on PATH. It runs no npm, which would warn about the settings of another
// version. The first `npx relay` in a clone links the package, which npm prepares again: by then it is built.
if (process.env.npm_command !== 'exec')
  require('node:child_process').execSync(require('../package.json').scripts.build, { stdio: 'inherit' })
