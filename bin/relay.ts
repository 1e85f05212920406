#!/usr/bin/env node
import module from 'node:module'

// Node 22.8 and later keep compiled code between starts, for the modules loaded after this call.
if ('enableCompileCache' in module && typeof module.enableCompileCache === 'function')
  module.enableCompileCache()

await import('./process.js')
