import type { CommandName } from '../catalog.js'
import type { AnyCommand } from '../command.js'

/** Loaders of the commands. A command's file is loaded when the command line names it. */
const LOADERS: Readonly<Record<CommandName, () => Promise<AnyCommand>>> = {
  serve: async () => (await import('./serve.js')).serveCommand,
  hub: async () => (await import('./hub.js')).hubCommand,
  mcp: async () => (await import('./mcp.js')).mcpCommand,
  inspect: async () => (await import('./inspect.js')).inspectCommand,
  log: async () => (await import('./log.js')).logCommand,
  show: async () => (await import('./show.js')).showCommand,
  export: async () => (await import('./export.js')).exportCommand,
  wait: async () => (await import('./wait.js')).waitCommand,
  replay: async () => (await import('./replay.js')).replayCommand,
  skip: async () => (await import('./skip.js')).skipCommand,
  trigger: async () => (await import('./trigger.js')).triggerCommand,
  verify: async () => (await import('./verify.js')).verifyCommand,
  routes: async () => (await import('./routes.js')).routesCommand,
  'catch-up': async () => (await import('./catch-up.js')).catchUpCommand,
  setup: async () => (await import('./setup.js')).setupCommand,
  hook: async () => (await import('./hook.js')).hookCommand,
  source: async () => (await import('./source.js')).sourceCommand,
  config: async () => (await import('./config.js')).configCommand,
  profiles: async () => (await import('./profiles.js')).profilesCommand,
  reset: async () => (await import('./reset.js')).resetCommand,
  doctor: async () => (await import('./doctor.js')).doctorCommand,
  completion: async () => (await import('./completion.js')).completionCommand,
  help: async () => (await import('./help.js')).helpCommand,
  version: async () => (await import('./version.js')).versionCommand,
  login: async () => (await import('./login.js')).loginCommand,
  revoke: async () => (await import('./revoke.js')).revokeCommand,
  token: async () => (await import('./token.js')).tokenCommand,
  whoami: async () => (await import('./whoami.js')).whoamiCommand,
  comment: async () => (await import('./comment.js')).commentCommand,
  merge: async () => (await import('./merge.js')).mergeCommand,
  react: async () => (await import('./react.js')).reactCommand,
}

export type Commands = Readonly<Partial<Record<CommandName, AnyCommand>>>

/** Loads the named commands. */
export async function loadCommands(names: readonly CommandName[]): Promise<Commands> {
  return Object.fromEntries(await Promise.all(names.map(async (name) => [name, await LOADERS[name]()])))
}
