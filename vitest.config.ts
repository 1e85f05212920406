import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { LIMIT_MS } from './test/kit/limit.js'

/** The folders whose files take longest, the longest first: a file is what a worker takes, and a long one would end the run alone. */
const SLOW = ['service', 'process', 'browser']

function rankOf({ moduleId }: TestSpecification): number {
  const rank = SLOW.findIndex((name) => moduleId.includes(`/test/${name}/`))
  return rank === -1 ? SLOW.length : rank
}

class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // oxlint-disable-next-line unicorn/no-array-sort -- not an array's
    const sorted = await super.sort(files)
    return sorted.toSorted((one, other) => rankOf(one) - rankOf(other))
  }
}

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/kit/setup.ts'],
    setupFiles: ['test/kit/worker.ts'],
    // For two cores: half of the time a worker waits for the processes that its tests start.
    maxWorkers: 4,
    // Half the time: a file neither starts a process of its own nor loads all modules again. Tests leave no global state behind.
    isolate: false,
    sequence: { sequencer: SlowFirst },
    // They end what hangs, and nothing that a busy machine takes its time for.
    testTimeout: 5 * LIMIT_MS,
    hookTimeout: 5 * LIMIT_MS,
    expect: { poll: { timeout: LIMIT_MS } },
    // A run leaves about 10,000 folders to remove.
    teardownTimeout: 60_000,
    // Vitest sets BASE_URL to "/" for its children; relay ignores such a value with a warning, tests want silence.
    unstubEnvs: true,
    // Not UTC, so that a local time is not mistaken for one.
    env: { TZ: 'Asia/Kolkata' },
  },
})
