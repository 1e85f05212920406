import { expect, it } from 'vitest'
import { hasDisplay } from '../../../src/old/commands/login/display.js'

it.each([
  [{}, 'linux', false],
  [{ DISPLAY: '' }, 'linux', false],
  [{ DISPLAY: ':0' }, 'linux', true],
  [{ WAYLAND_DISPLAY: 'wayland-0' }, 'linux', true],
  [{ WSL_DISTRO_NAME: 'Debian' }, 'linux', true],
  [{ BROWSER: 'w3m' }, 'linux', true],
  [{ DISPLAY: ':10', SSH_CONNECTION: 'x' }, 'linux', false],
  [{}, 'darwin', true],
  [{ SSH_CONNECTION: 'x' }, 'darwin', false],
  [{}, 'win32', true],
] as const)('hasDisplay %j on %s: %s', (env, platform, has) => {
  expect(hasDisplay(env, platform)).toBe(has)
})
