import type { Command } from 'commander'
import type { Context } from './context.js'

/** Gives a command all it has beyond its name: description, arguments, flags, and what it does. */
export type Declare = (command: Command, context: Context) => void

/** A command as the list of all commands shows it. Its declaration is loaded when it is the one that is asked for. */
export interface CommandRow {
  /** What may follow the name, as the declaration has it. */
  readonly usage: string
  readonly summary: string
  readonly load: () => Promise<Declare>
}

/** Every command under its name, in the groups in which help shows them. */
export const COMMANDS: Readonly<Record<string, Readonly<Record<string, CommandRow>>>> = {
  'Service:': {
    serve: {
      usage: '[options]',
      summary: 'run the service',
      load: async () => (await import('./commands/serve.js')).declareServe,
    },
  },
  'Journal:': {
    log: {
      usage: '[options]',
      summary: 'list deliveries, and what became of them',
      load: async () => (await import('./commands/log.js')).declareLog,
    },
    show: {
      usage: '[options] <entry>',
      summary: 'show one delivery, and what its targets said',
      load: async () => (await import('./commands/show.js')).declareShow,
    },
    export: {
      usage: '[options] <entry>',
      summary: 'make a fixture of a delivery',
      load: async () => (await import('./commands/export.js')).declareExport,
    },
    wait: {
      usage: '[options] <match>',
      summary: 'wait for a delivery',
      load: async () => (await import('./commands/wait.js')).declareWait,
    },
    replay: {
      usage: '[options] [file...]',
      summary: 'send deliveries again',
      load: async () => (await import('./commands/replay.js')).declareReplay,
    },
    trigger: {
      usage: '[options] [event]',
      summary: 'send a made-up delivery of an event',
      load: async () => (await import('./commands/trigger.js')).declareTrigger,
    },
    verify: {
      usage: '[options] <file...>',
      summary: 'tell why a signature does not fit',
      load: async () => (await import('./commands/verify.js')).declareVerify,
    },
    routes: {
      usage: '',
      summary: 'say where deliveries go',
      load: async () => (await import('./commands/routes.js')).declareRoutes,
    },
  },
  'Signing in:': {
    login: {
      usage: '[options]',
      summary: 'sign in at the code host',
      load: async () => (await import('./commands/login.js')).declareLogin,
    },
    revoke: {
      usage: '[options]',
      summary: "forget a user's token, here and at the code host",
      load: async () => (await import('./commands/revoke.js')).declareRevoke,
    },
    token: {
      usage: '[options]',
      summary: "print a user's access token",
      load: async () => (await import('./commands/token.js')).declareToken,
    },
    whoami: {
      usage: '[options]',
      summary: 'say who is signed in',
      load: async () => (await import('./commands/whoami.js')).declareWhoami,
    },
  },
  'Acting:': {
    comment: {
      usage: '[options] <target> [text]',
      summary: 'comment on an issue or pull request',
      load: async () => (await import('./commands/comment.js')).declareComment,
    },
    merge: {
      usage: '[options] <target>',
      summary: 'merge a pull request',
      load: async () => (await import('./commands/merge.js')).declareMerge,
    },
    react: {
      usage: '[options] <target> <reaction>',
      summary: 'react to an issue, pull request or comment',
      load: async () => (await import('./commands/react.js')).declareReact,
    },
  },
  'relay itself:': {
    completion: {
      usage: '<shell>',
      summary: 'print a script that completes relay in your shell',
      load: async () => (await import('./commands/completion.js')).declareCompletion,
    },
    config: {
      usage: '[options]',
      summary: 'show the settings, and where each comes from',
      load: async () => (await import('./commands/config.js')).declareConfig,
    },
    doctor: {
      usage: '[options]',
      summary: 'say what is wrong, and what mends it',
      load: async () => (await import('./commands/doctor.js')).declareDoctor,
    },
  },
}
