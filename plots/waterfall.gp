# plots/waterfall.gp - columns of `data`: label, low, high (percent of the dense peak), kind, text above the bar.
width = 1200
height = 560
load style
set datafile columnheaders
set border 2
set lmargin at screen 0.07
set rmargin at screen 0.975
set tmargin at screen 1.0 - 84.0/height
set bmargin at screen 58.0/height
set label 1 heading at screen 0.07, screen 1.0 - 26.0/height left font ',15' textcolor rgb ink
set label 2 caption at screen 0.07, screen 1.0 - 52.0/height left textcolor rgb '#555555'
set xrange [-0.6:bars-0.4]
set yrange [0:108]
set ytics 0,20,100 format '%.0f %%'
set ylabel 'share of the dense peak' textcolor rgb ink
tick_font = bars > 10 ? ',9' : bars > 7 ? ',11' : ',12'
set xtics scale 0 font tick_font
unset key
kinds = "peak 'kernel loss' recompute 'tensor comm' 'context comm' 'expert comm' 'pipeline comm' 'data comm' offload optimizer other bubble 'slow GPUs' input rest"
array colours[15] = [0x0072B2, 0x56B4E9, 0xF0E442, 0xE69F00, 0xB36B00, 0xF5C77E, 0x56B4E9, 0xCC79A7, 0x7F5F3F, 0x7A6A9B, 0xD55E00, 0xBBBBBB, 0x8C2D04, 0x525252, 0x0072B2]
colour(kind) = (sum [i=1:15] (word(kinds, i) eq kind ? colours[i] : 0))
whole(kind) = kind eq 'peak' || kind eq 'rest'
plot data using 0:'low_percent':($0-0.38):($0+0.38):'low_percent':'high_percent':(colour(stringcolumn('kind'))):xtic(1) with boxxyerror lc rgb variable notitle, \
     data using ($0+0.38):($0 == 0 ? column('high_percent') : whole(stringcolumn('kind')) ? NaN : column('low_percent')):(0.24):(0) with vectors nohead lc rgb '#888888' dt 3 notitle, \
     data using 0:'high_percent':'shown' with labels offset 0,0.7 textcolor rgb ink notitle
