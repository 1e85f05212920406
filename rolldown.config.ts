import { defineConfig } from 'rolldown'
import { licences } from './scripts/licences.js'

/** What is started: the program, and the process it keeps for the keychain, which it looks for beside itself. */
const ENTRIES = ['bin/relay.ts', 'src/store/keychain-helper.ts']

/**
 * The command line in few files, since at every start each file costs about a millisecond. The library is left to tsc.
 * See docs/decisions/011.
 */
export default defineConfig({
  input: ENTRIES,
  platform: 'node',
  tsconfig: false,
  transform: { target: 'es2023' },
  // Native, looking for files beside themselves, or seldom loaded.
  external: ['lmdb', 'keytar', 'open', 'smee-client', 'undici'],
  plugins: [licences()],
  output: {
    dir: 'dist/bin',
    chunkFileNames: '[name].js',
    sourcemap: true,
    codeSplitting: {
      // Without the entries: they wait for what they have started, and nothing may wait for them.
      groups: [
        { name: 'start', tags: ['$initial'], test: (id) => !ENTRIES.some((entry) => id.endsWith(entry)) },
      ],
    },
  },
})
