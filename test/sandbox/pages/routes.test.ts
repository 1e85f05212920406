import { describe, expect, it } from 'vitest'
import type { Sandbox } from '../../../src/sandbox/sandbox.js'
import { call, json, signIn, start } from '../rig.js'

async function page(sandbox: Sandbox, path: string): Promise<string> {
  const answer = await fetch(sandbox.url + path)
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
  return (await answer.text()).replaceAll(/\s+/g, ' ')
}

describe('the web site', () => {
  it('lists the repositories on its front page, and every link works', async () => {
    await using sandbox = await start()
    const front = await page(sandbox, '/')
    const links = [...front.matchAll(/href="([^"]+)"/g)].map(([, link = '']) => link)
    expect(links).toEqual([
      '/',
      '/octo/demo/issues/1',
      '/octo/demo/pull/2',
      '/octo/demo/pull/3',
      '/octo/demo/issues/4',
      '/octo/demo/pull/5',
      '/octo/no-issues',
      '/octo/fault-502',
      '/octo/fault-rate-limit',
      '/octo/fault-secondary-limit',
      '/octo/fault-slow',
      '/octo/fault-reset',
      '/octo/fault-reset-after',
      '/octo/fault-invalid-json',
      '/login/device',
      '/settings/tokens/new',
    ])
    for (const link of links) await page(sandbox, link)
  })

  it('shows a comment as text, and the reactions', async () => {
    await using sandbox = await start()
    const headers = await signIn(sandbox)
    const repo = '/repos/octo/demo/issues'
    const made = await call(sandbox, `POST ${repo}/1/comments`, headers, {
      body: `<script>alert(1)</script><img src=x onerror="alert(2)"> & 'quotes'`,
    })
    const { id } = await json<{ id: number }>(made)
    await call(sandbox, `POST ${repo}/1/reactions`, headers, { content: 'heart' })
    await call(sandbox, `POST ${repo}/comments/${id}/reactions`, headers, { content: 'rocket' })

    const shown = await page(sandbox, '/octo/demo/issues/1')
    expect(shown).toContain('<h1>Say hello')
    expect(shown).toContain(`<article id="issuecomment-${id}">`)
    expect(shown).toContain(
      '<div>&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x onerror=&quot;alert(2)&quot;&gt; &amp; &#39;quotes&#39;</div>',
    )
    expect(shown).not.toMatch(/<script|<img/)
    expect(shown).toContain('❤️ octo')
    expect(shown).toContain('🚀 octo')
    expect(await page(sandbox, '/')).toContain('Issue · 1 comment ·')
  })

  it('shows the merge state before and after', async () => {
    await using sandbox = await start()
    expect(await page(sandbox, '/octo/demo/pull/3')).toContain(
      '<strong>conflicts with</strong> <code>main</code> and cannot',
    )
    expect(await page(sandbox, '/octo/demo/pull/2')).toContain(
      'has no conflicts with <code>main</code> and can be merged.',
    )
    await call(sandbox, 'PUT /repos/octo/demo/pulls/2/merge', await signIn(sandbox))
    const merged = await page(sandbox, '/octo/demo/pull/2')
    expect(merged).toContain('<span class="state merged">Merged</span>')
    expect(merged).toContain('<strong>octo</strong> merged <code>greeting</code> into <code>main</code>')
  })

  it('finds a pull request under /issues and an issue under /pull', async () => {
    await using sandbox = await start()
    const go = async (path: string) =>
      (await fetch(sandbox.url + path, { redirect: 'manual' })).headers.get('location')
    expect(await go('/octo/demo/issues/2')).toBe('/octo/demo/pull/2')
    expect(await go('/octo/demo/pull/1')).toBe('/octo/demo/issues/1')
  })

  it('shows the newest hundred comments', async () => {
    await using sandbox = await start()
    for (let i = 1; i <= 102; i++) {
      const issue = sandbox.state.issue('octo/demo', 1)
      if (issue) sandbox.state.addComment(issue, 'octo', `comment ${i}.`)
    }
    const shown = await page(sandbox, '/octo/demo/issues/1')
    expect(shown).toContain('2 older comments')
    expect(shown).not.toContain('comment 2.')
    expect(shown).toContain('comment 3.')
  })
})
