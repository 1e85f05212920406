// Imported into a program under test: ends it when the other end of its file descriptor 3 closes, which is when the test
// process is gone, however it went.
import { Socket } from 'node:net'

const end = () => process.kill(process.pid, 'SIGKILL')
new Socket({ fd: 3 }).on('error', end).on('close', end).resume().unref()
