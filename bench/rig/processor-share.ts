import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'

/** Where the kernel limits processor time: version 1 of its control groups where that has the controller, otherwise version 2. */
const V1 = '/sys/fs/cgroup/cpu'
const V2 = '/sys/fs/cgroup'
/** A process that has used its share waits for the rest of this. Short, so that it waits often and not for long. Microseconds. */
const PERIOD = 10_000

/**
 * Limits a process to this share of one processor until disposal, with all its threads
 * (https://docs.kernel.org/scheduler/sched-bwc.html, https://docs.kernel.org/admin-guide/cgroup-v2.html#cpu).
 * @throws Error without the right to do so.
 */
export function limitProcessor(pid: number, share: number): AsyncDisposable {
  const quota = Math.round(PERIOD * share)
  const parent = existsSync(V1) ? V1 : V2
  const group = path.join(parent, `relay-bench-${pid}`)
  if (parent === V2) writeFileSync(path.join(V2, 'cgroup.subtree_control'), '+cpu')
  mkdirSync(group)
  const limits =
    parent === V2
      ? { 'cpu.max': `${quota} ${PERIOD}` }
      : { 'cpu.cfs_period_us': `${PERIOD}`, 'cpu.cfs_quota_us': `${quota}` }
  for (const [name, value] of Object.entries(limits)) writeFileSync(path.join(group, name), value)
  writeFileSync(path.join(group, 'cgroup.procs'), `${pid}`)
  return {
    async [Symbol.asyncDispose]() {
      writeFileSync(path.join(parent, 'cgroup.procs'), `${pid}`)
      rmdirSync(group)
    },
  }
}
