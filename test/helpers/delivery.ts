import { Secret } from '../../src/base/secret.js'
import { openHost } from '../../src/codehost/hosts.js'
import { SECRET } from '../kit/delivery.js'

export const SECRETS = { current: new Secret(SECRET) }

export const GITHUB = openHost({ name: 'github', url: 'https://github.com' })
export const GITEA = openHost({ name: 'gitea', url: 'https://gitea.example' })
