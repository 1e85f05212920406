# What zsh offers when Tab is pressed after each line of the file LINES: a word a line, and after those of each line
# a line of dots.
# zsh -f zsh-complete.zsh SCRIPT LINES HITS
# A second zsh, with a terminal of its own, loads the script and has the key pressed. Whatever it would offer goes
# through compadd, which writes it into the file HITS.
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "autoload -Uz compinit; compinit -D; source ${(q)1}"
zpty -w shell "compadd() {
  [[ \${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]] && { builtin compadd \"\$@\"; return }
  local -a hits
  builtin compadd -A hits \"\$@\"
  (( \$#hits )) && print -rl -- \$hits >>${(q)3}
}"
# The quotes tell what is printed from the echo of what is typed. Keys may be pressed once the line editor has printed
# its prompt: before, the terminal itself would take some of them.
zpty -w shell "bindkey '^I' complete-word; PROMPT='EDIT''ING '"
while IFS= read -r line; do
  zpty -r shell out '*EDITING *'
  zpty -w -n shell "$line"$'\t'
  zpty -w -n shell $'\C-u'"print ... >>${(q)3}; print DO''NE"$'\n'
  zpty -r shell out '*DONE*'
done <$2
