import type { CommandSpec } from '../../command.js'
import { SEND } from '../replay/send-options.js'

export const trigger: CommandSpec = {
  ...SEND,
  name: 'trigger',
  group: 'Journal:',
  summary: 'send a made-up delivery of an event',
  description: `Sends a signed delivery as the code host would, to the running relay serve or to any URL. The payload is made
up, with every field of a real one.`,
  examples: [
    'relay trigger --list',
    'relay trigger push',
    'relay trigger issue_comment.created --set comment.body=/merge',
    'relay trigger pull_request.opened --to http://localhost:3000/hook',
    'relay trigger issues.opened --provider gitea --print > opened.json',
  ],
  arguments: [{ name: '[event]', help: 'event or event.action' }],
  options: [
    { flags: '--list', help: 'list the events' },
    { flags: '--print', help: 'print the fixture instead of sending it' },
    ...SEND.options,
  ],
  settings: ['provider'],
  load: async () => (await import('./trigger.js')).runTrigger,
}
