// Runs in a page: elements that reach beyond it, and those that scroll sideways though they are no code, or whose text is cut
// without a sign that it continues (`…`).
;(() => {
  const found = []
  const root = document.documentElement
  const say = (what, element) => found.push(`${what}: ${element.outerHTML.slice(0, 120)}`)
  if (root.scrollWidth > root.clientWidth) say('wider than the window', root)
  for (const element of document.querySelectorAll('body *')) {
    if (element.closest('.code, .sr-only, .skip, svg, noscript') || !element.checkVisibility()) continue
    const style = getComputedStyle(element)
    const isWider = element.scrollWidth > element.clientWidth + 1 && style.display !== 'inline'
    if (isWider && style.textOverflow !== 'ellipsis' && style.overflowX !== 'visible')
      say('scrolls sideways', element)
    const isShortened = element.parentElement.closest('.row-subject, .row-event') !== null
    if (!isShortened && element.getBoundingClientRect().right > root.clientWidth + 1) say('cut off', element)
  }
  return found
})()
