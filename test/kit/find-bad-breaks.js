// Runs in a page: the lines of code that do not read well where they wrap. Their comma stands alone, or they begin with an empty row,
// or they reach beyond the box.
;(() => {
  const found = []
  for (const { shadowRoot } of document.querySelectorAll('.code-view'))
    for (const line of shadowRoot?.querySelectorAll('.cm-line') ?? []) {
      const texts = document.createTreeWalker(line, NodeFilter.SHOW_TEXT)
      const chars = []
      while (texts.nextNode())
        for (let i = 0; i < texts.currentNode.length; i++) {
          const range = document.createRange()
          range.setStart(texts.currentNode, i)
          range.setEnd(texts.currentNode, i + 1)
          if (range.toString() !== ' ') chars.push(range.getBoundingClientRect())
        }
      const [last, beforeLast] = [chars.at(-1), chars.at(-2)]
      const say = (what) => found.push(`${what}: ${line.textContent.slice(0, 80)}`)
      if (beforeLast && last.top > beforeLast.bottom) say('its end stands alone')
      if (chars[0]?.top > line.getBoundingClientRect().top + chars[0].height) say('its first row is empty')
      const { right } = line.closest('.cm-scroller').getBoundingClientRect()
      if (chars.some((char) => char.right > right)) say('wider than the box')
    }
  return found
})()
