# What zsh offers when Tab is pressed after a line, a word a line: zsh -f zsh-complete.zsh SCRIPT LINE HITS
# A second zsh, with a terminal of its own, loads the script and has the key pressed. Whatever it would offer goes
# through compadd, which writes it into the file HITS.
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PROMPT=; autoload -Uz compinit; compinit -D; source ${(q)1}"
zpty -w shell "compadd() {
  [[ \${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]] && { builtin compadd \"\$@\"; return }
  local -a hits
  builtin compadd -A hits \"\$@\"
  (( \$#hits )) && print -rl -- \$hits >>${(q)3}
}"
zpty -w shell "bindkey '^I' complete-word; print READY"
zpty -r shell out '*READY*READY*'
zpty -w -n shell "$2"$'\t'
zpty -w -n shell $'\C-u'"print DONE; exit"$'\n'
zpty -r shell out '*DONE*DONE*'
