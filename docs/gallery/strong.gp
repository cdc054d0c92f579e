# docs/gallery/strong.gp - columns of `data`: kind (strong, weak), GPUs, tokens/s a GPU, and its interval, low and high, in thousands.
set multiplot
set logscale x 2
set xlabel 'GPUs' textcolor rgb ink
set xrange [28:4700]
set yrange [0:*]
stats data skip 1 using 5 name 'top' nooutput
set yrange [0:top_max*1.05]
set xtics (32, 64, 128, 256, 512, 1024, 2048, 4096)
set tmargin at screen 1.0 - 104.0/height
set ylabel 'thousand tokens/s a GPU' textcolor rgb ink
set key at graph 0.03, graph 0.05 left bottom reverse Left samplen 2 textcolor rgb ink
of(kind) = stringcolumn(1) eq kind ? column(2) : NaN
set rmargin at screen 0.51
set label 3 'strong: 512 sequences a step, whatever the GPUs' at screen 0.085, screen 1.0 - 78.0/height left textcolor rgb ink
plot data skip 1 using (of('strong')):4:5 with filledcurves fc rgb '#0072B2' fs transparent solid 0.18 title '9 of 10 published runs lie within', \
     data skip 1 using (of('strong')):3 with linespoints lw 2 pt 7 ps 1.1 lc rgb '#0072B2' title 'predicted'
unset label 1
unset label 2
set label 3 'weak: 2 sequences a GPU and step' at screen 0.56, screen 1.0 - 78.0/height left textcolor rgb ink
set lmargin at screen 0.56
set rmargin at screen 0.985
set ylabel ''
plot data skip 1 using (of('weak')):4:5 with filledcurves fc rgb '#D55E00' fs transparent solid 0.18 title '9 of 10 published runs lie within', \
     data skip 1 using (of('weak')):3 with linespoints lw 2 pt 7 ps 1.1 lc rgb '#D55E00' title 'predicted'
unset multiplot
