# plots/finetune.gp - a bar of memory for each way to fine-tune, against the capacity. Columns of `data`: what, kinds from the
# bottom up, step_s.
width = 900
height = 560
edge = 0.08
load style
set datafile columnheaders
set lmargin at screen 0.08
set rmargin at screen 0.975
set bmargin at screen 66.0 / height
set tmargin at screen 1.0 - 116.0 / height
kinds = "weights gradients optimizer activations workspace 'reserved besides'"
columns = 'weights_gib gradients_gib optimizer_gib activations_gib workspace_gib reserved_besides_gib'
cells(n) = sum [j=1:n] column(word(columns, j))
set xrange [-0.6:bars-0.4]
set yrange [0:top*1.12]
set ylabel 'GiB' textcolor rgb ink
set xtics scale 0
set boxwidth 0.6
set key at screen 0.075, screen 1.0 - 68.0/height left top horizontal reverse Left samplen 1.2 maxrows 2 textcolor rgb ink
plot for [k=6:1:-1] data using 0:(cells(k)):xtic(1) with boxes lc rgb coded(word(kinds, k)) notitle, \
     data using 0:(cells(6)):(sprintf('%.1f GiB, step %.3g s', cells(6), column('step_s'))) with labels offset 0,0.7 textcolor rgb ink notitle, \
     for [k=1:6] NaN with boxes lc rgb coded(word(kinds, k)) title word(kinds, k), \
     capacity with lines lw 2 dt 2 lc rgb '#D55E00' title sprintf('capacity %.1f GiB', capacity)
