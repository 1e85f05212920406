// Bundles the command line into few files, since at every start each file costs about a millisecond. The library is left
// to tsc. See docs/decisions/011.
import { build } from 'rolldown'
import { asCommonJs } from './bundle/as-common-js.js'
import { lateBuiltins } from './bundle/late-builtins.js'
import { lateChalk } from './bundle/late-chalk.js'
import { lateChildProcess } from './bundle/late-child-process.js'
import { lateImports } from './bundle/late-imports.js'
import { licences } from './bundle/licences.js'
import { nativeLmdb } from './bundle/native-lmdb.js'
import { ownRuntime } from './bundle/own-runtime.js'
import { withoutThreads } from './bundle/without-threads.js'

/** What is started: the program, and the process it keeps for the keychain, which it looks for beside itself. */
const ENTRIES = ['bin/relay.ts', 'src/store/keychain-helper.ts']

await build({
  input: ENTRIES,
  platform: 'node',
  tsconfig: false,
  transform: { target: 'es2023' },
  // Native, looking for files beside themselves, or seldom loaded.
  external: ['keytar', 'open', 'smee-client', 'undici'],
  // What one command loads late, another may load at once.
  checks: { ineffectiveDynamicImport: false, eval: false },
  plugins: [
    asCommonJs(),
    lateBuiltins(),
    lateChalk(),
    lateChildProcess(),
    lateImports(),
    licences(),
    nativeLmdb(),
    ownRuntime(),
    withoutThreads(),
  ],
  output: {
    dir: 'dist/bin',
    format: 'cjs',
    chunkFileNames: '[name].js',
    // They are read at every start.
    comments: false,
    charset: 'ascii',
    sourcemap: true,
    codeSplitting: {
      // Each with all that it imports and no group before it has.
      groups: [
        { name: 'relay', test: /bin\/relay\.ts$/ },
        { name: 'main', test: /bin\/process\.ts$/ },
        { name: 'store', test: /src\/store\/(?:open|file)\.ts$/ },
        { name: 'acting', test: /src\/cli\/commands\/(?:comment|merge|react)\.ts$/ },
        { name: 'session', test: /src\/cli\/(?:session|action)\.ts$/ },
      ],
    },
  },
})
