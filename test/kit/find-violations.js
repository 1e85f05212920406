// Runs in a page that axe-core is in: each rule that is broken, with the elements that break it.
globalThis.findViolations = async (options) => {
  // Without the paths of all elements that break none, which take as long again.
  const { violations } = await axe.run({ resultTypes: ['violations'], ...options })
  return violations.map(({ id, nodes }) => {
    const where = nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`)
    return `${id}: ${where.join('; ')}`
  })
}
