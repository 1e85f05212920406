// Runs in a page that axe-core is in: each rule that is broken, with the elements that break it.
globalThis.findViolations = async (options) => {
  const { violations } = await axe.run(options)
  return violations.map(({ id, nodes }) => {
    const where = nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`)
    return `${id}: ${where.join('; ')}`
  })
}
