#!/bin/sh
# tests/cli/test_completions.sh ORRERY SOURCE - the completions in the shells that they are for: loaded, asked, and their
# answers read. bash, zsh and fish each where it is installed; 77 (skipped) where none is.
set -u
orrery=$1
source_dir=$2
tried=0
PATH=$(dirname "$orrery"):$PATH
export PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

expect() { # shell, what was typed, answers, words that must be among them
    shell=$1 typed=$2 answers=$3
    shift 3
    for word in "$@"; do
        case $answers in
        *"$word"*) ;;
        *)
            printf '%s: "%s" does not offer %s, but:\n%s\n' "$shell" "$typed" "$word" "$answers"
            exit 1
            ;;
        esac
    done
}

if command -v bash >/dev/null; then
    tried=1
    bash_offers() {
        bash --norc -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
            spec=$(complete -p orrery); f=${spec##*-F }; "${f%% *}"; printf "%s\n" "${COMPREPLY[@]}"' bash "$source_dir/completions/orrery.bash" "$@" 2>&1
    }
    expect bash 'orrery ex' "$(bash_offers orrery ex)" explain export
    expect bash 'orrery run --ch' "$(bash_offers orrery run --ch)" --check
fi
if command -v fish >/dev/null; then
    tried=1
    fish_offers() {
        fish --no-config -c 'source $argv[1]; complete -C "$argv[2]"' "$source_dir/completions/orrery.fish" "$1" 2>&1
    }
    expect fish 'orrery ' "$(fish_offers 'orrery ')" run search import help calibrate
    expect fish 'orrery ex' "$(fish_offers 'orrery ex')" explain export
    expect fish 'orrery run --ch' "$(fish_offers 'orrery run --ch')" --check
    errors=$(fish --no-config -c 'source $argv[1]' "$source_dir/completions/orrery.fish" 2>&1)
    [ -z "$errors" ] || {
        printf 'fish: %s\n' "$errors"
        exit 1
    }
fi
if command -v zsh >/dev/null; then
    tried=1
    zsh_offers() { # types the words and a tab into a shell of its own
        zsh -f -c '
            zmodload zsh/zpty
            zpty shell zsh -f -i
            zpty -w shell "PS1=; fpath=($1/completions \$fpath); autoload -U compinit; compinit -u -D"
            zpty -w shell "zstyle \":completion:*\" list-prompt \"\"; LISTMAX=1000; print rea""dy"
            line=; while zpty -r shell line; do [[ $line == *ready* ]] && break; done
            zpty -n -w shell "$2"$'"'\\t\\t'"'
            sleep 2
            all=; while zpty -r -t shell line; do all+=$line; done
            print -r -- $all
            zpty -d shell' zsh "$source_dir" "$1" 2>&1
    }
    expect zsh 'orrery ex' "$(zsh_offers 'orrery ex')" explain export
    expect zsh 'orrery run --ch' "$(zsh_offers 'orrery run --ch')" --check
fi
[ "$tried" -eq 1 ] || exit 77
