# bash completion of orrery; written by 'orrery help --bash'
_orrery() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words=
    if [ "$COMP_CWORD" -eq 1 ]; then
        words='run explain search plan campaign jobs sweep compare plot validate collective calibrate list report export import generate trace replay learn mcp serve help --version'
    else
        case $before in
        --format) words='text json csv' ;;
        --set) words=$(orrery help --keys 2>/dev/null) ;;
        --ranks|--from|--to|--by|--steps|--memory-reserve|--top|--jobs|--max-seconds|--accelerator|--cluster|--framework|--for|--deadline|--budget-usd|--power-mw|--gpus|--batch-range|--textbook-rate|--parameters|--replicas|--seed|--days|--count|--vary|--part|--slurm|--what|--topology|--dims|--rate|--fail|--op|--bytes|--width|--algorithm|--library|--fidelity|--routing|--seeds|--order|--segments|--root|--reduce|--latency|--folds|--launch|--args|--prompts|--samples|--prompt-tokens|--answer-tokens|--answer-log-sd|--answer-most|--most-sequences|--batch|--context|--pass|--port|--listen|--token|--schema) return ;;
        *)
            case ${COMP_WORDS[1]}:$word in
            run:-*) words='--trace --trace-kernels --chakra --simai --program --ranks --from --to --memory --by --steps --memory-snapshot --kernels --links --own-runs --memory-reserve --unfold --timeline --ideal --textbook --verbose --check --set --format --output --quiet --help' ;;
            explain:-*) words='--memory-reserve --own-runs --set --format --output --quiet --help' ;;
            search:-*) words='--own-runs --top --jobs --max-seconds --accelerator --cluster --framework --for --save --save-all --memory-reserve --exhaustive --ideal --set --format --output --quiet --progress --help' ;;
            plan:-*) words='--own-runs --deadline --budget-usd --power-mw --for --gpus --batch-range --memory-reserve --accelerator --cluster --framework --machines --whole-racks --textbook-rate --parameters --plot --ideal --svg --set --format --output --quiet --progress --help' ;;
            campaign:-*) words='--replicas --seed --days --timeline --ideal --jobs --set --format --output --quiet --progress --help' ;;
            jobs:-*) words='--seed --count --gpus --plot --svg --format --output --quiet --help' ;;
            sweep:-*) words='--own-runs --vary --ideal --jobs --journal --part --slurm --set --format --output --quiet --progress --help' ;;
            compare:-*) words='--quick --ideal --own-runs --plot --svg --set --format --output --quiet --help' ;;
            plot:-*) words='--vary --what --cluster --ranks --topology --dims --rate --fail --op --bytes --width --svg --set --format --output --quiet --help' ;;
            validate:-*) words='--rows --leave-one-out --leave-family-out --reserve --software-defaults --few-shot --ablations --residuals --plot --set --format --output --quiet --help' ;;
            collective:-*) words='--op --bytes --ranks --cluster --algorithm --library --fidelity --topology --routing --seed --seeds --dims --order --segments --root --reduce --rate --latency --fail --show-data --trace --compare --set --format --output --quiet --help' ;;
            calibrate:-*) words='--accelerator --cluster --presets --folds --plot --page --svg --rows --strict --quick --full --set --format --output --quiet --help' ;;
            list:-*) words='--format --output --quiet --help' ;;
            report:-*) words='--own-runs --compare --no-search --max-seconds --ideal --memory-reserve --set --output --quiet --help' ;;
            export:-*) words='--to --launch --set --output --quiet --help' ;;
            import:-*) words='--from --base --cluster --args --set --output --quiet --help' ;;
            generate:-*) words='--prompts --samples --prompt-tokens --answer-tokens --answer-log-sd --answer-most --most-sequences --batch --context --check --set --format --output --quiet --help' ;;
            trace:-*) words='--scenario --beside --pass --page --set --format --output --quiet --help' ;;
            replay:-*) words='--check --format --output --quiet --help' ;;
            learn:-*) words='--scenario --set --output --quiet --help' ;;
            mcp:-*) words='--help' ;;
            serve:-*) words='--port --open --listen --token --store --worker --quiet --help' ;;
            help:-*) words='--schema --keys --man --bash --zsh --fish --glossary --output --quiet --help' ;;
            list:*) words='models accelerators peaks clusters frameworks schedules collectives libraries topologies faults storage jitter workloads examples' ;;
            help:*) words='run explain search plan campaign jobs sweep compare plot validate collective calibrate list report export import generate trace replay learn mcp serve help '$(orrery help --keys 2>/dev/null) ;;
            esac ;;
        esac
    fi
    if [ -n "$words" ]; then
        COMPREPLY=($(compgen -W "$words" -- "$word"))
    else
        COMPREPLY=($(compgen -f -- "$word"))
    fi
}
complete -o filenames -F _orrery orrery
