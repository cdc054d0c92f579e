# docs/gallery/bubble.gp - columns of `data`: schedule, micro-batches, bubble (percent).
set ylabel 'pipeline bubble (% of the step, mean over ranks)' textcolor rgb ink
set xlabel 'micro-batches a pipeline' textcolor rgb ink
set logscale x 2
set xrange [7:150]
set yrange [0:]
set key top right reverse Left samplen 2 textcolor rgb ink
names = "gpipe 1f1b interleaved zb-h1 zb-v dualpipev"
array colours[6] = ['#56B4E9', '#0072B2', '#009E73', '#E69F00', '#D55E00', '#CC79A7']
shown = "GPipe 1F1B interleaved ZB-H1 ZB-V DualPipeV"
dash(i) = i == 2 ? 2 : 1
colour(i) = colours[i]
plot for [i=1:6] data using (stringcolumn(1) eq word(names, i) ? column(2) : NaN):3 with linespoints lw 2 pt 7 ps 1.2 \
     dt dash(i) lc rgb colour(i) title word(shown, i)
