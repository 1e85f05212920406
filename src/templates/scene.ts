import type { Issue } from '../sandbox/model.js'
import { repositoryResource } from '../sandbox/resources/repository.js'
import { userResource } from '../sandbox/resources/user.js'
import { View } from '../sandbox/resources/view.js'
import { DEMO, OWNER } from '../sandbox/seed.js'
import { SandboxState } from '../sandbox/state.js'
import { type Template, timestamp } from './template.js'

/** The sandbox's repository as it would be on github.com. */
export class Scene extends View {
  readonly at: string

  constructor(now: number) {
    super(new SandboxState(() => now), () => 'https://github.com')
    this.at = timestamp(now)
  }

  override get api(): string {
    return 'https://api.github.com'
  }

  get context() {
    return { repository: repositoryResource(this, DEMO), sender: userResource(this, OWNER) }
  }

  issue(number: number, change: Partial<Issue> = {}): Issue {
    const issue = this.state.issues.find((issue) => issue.repo === DEMO && issue.number === number)
    if (!issue) throw new Error('unreachable: the sandbox has it')
    return { ...issue, ...change }
  }
}

/** A template that tells of a scene made for its instant. */
export function templateOf(payload: (scene: Scene) => Record<string, unknown>): Template {
  return (now) => payload(new Scene(now))
}
