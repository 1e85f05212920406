// Bundles the command line into few files: at every start, each file costs about a millisecond. tsc builds the library.
// See docs/decisions/011.
import { build } from 'rolldown'
import { bundleBrowser } from './bundle/browser.js'
import { licences } from './bundle/licences.js'

const OPTIONS = {
  platform: 'node',
  tsconfig: false,
  transform: { target: 'es2023' },
} as const

await build({
  ...OPTIONS,
  input: 'bin/relay.ts',
  // Packages that are native, read files of their own, or serve few commands.
  external: [
    '@photostructure/sqlite',
    'keytar',
    'open',
    'pg',
    'pgpass',
    'prom-client',
    'smee-client',
    'undici',
  ],
  // Some commands load lazily what others load at once.
  checks: { ineffectiveDynamicImport: false },
  plugins: [licences()],
  output: {
    dir: 'dist/bin',
    // Node's loader of ES modules takes 3 to 6 ms more.
    format: 'cjs',
    entryFileNames: '[name].cjs',
    chunkFileNames: '[name].cjs',
    sourcemap: true,
    // Names stay, for the stack of a defect; comments are a third of what would be read at each start.
    minify: { compress: false, mangle: false, codegen: { removeWhitespace: true } },
    codeSplitting: {
      // Each group contains its imports that no earlier group contains.
      groups: [
        // All that `relay --version` needs.
        { name: 'version', test: /package\.json$/ },
        { name: 'main', test: /bin\/process\.ts$/ },
        // What the commands that read a profile share.
        {
          name: 'profile',
          test: /src\/(?:cli\/(?:profile|journal|refused|output\/deliveries)|store\/(?:open|schema|sql))\.ts$/,
        },
        // With the native code of SQLite.
        { name: 'sqlite', test: /src\/store\/sqlite\.ts$/ },
        // What the commands that act for a user share.
        { name: 'session', test: /src\/cli\/session\.ts$/ },
      ],
    },
  },
})

await bundleBrowser()
