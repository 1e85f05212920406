/** GitHub's published example secret, which the fixtures that come with relay are signed with. It protects nothing. */
export const TEST_SECRET = "It's a Secret to Everybody"
