// Runs a program, named second, with what is compiled of it kept in the folder named first.
import { createRequire } from 'node:module'
import path from 'node:path'
import { keepCompiled } from '../../../bin/compiled.js'

const [folder = '', program = ''] = process.argv.slice(2)
const load = keepCompiled(path.dirname(program), folder, createRequire(program))
load(`./${path.basename(program)}`)
