# plots/stragglers.gp - columns of `data`: pipeline rank, data rank, what it lacks of its pace (percent).
width = 1200
height = 600
edge = 0.075
load style
set lmargin at screen 0.075
set rmargin at screen 0.96
set tmargin at screen 1.0 - 84.0/height
set rmargin at screen 0.88
set bmargin at screen 70.0/height
set datafile columnheaders
set border 0
unset grid
set tics scale 0
set xrange [-0.5:data_ranks - 0.5]
set yrange [-0.5:pipeline_ranks - 0.5]
set cbrange [0:most]
set palette defined (0 '#F3F5F7', 0.25 '#C6DBEF', 0.5 '#FDBF6F', 1 '#B2182B')
set cblabel 'lacks of its pace (%)' textcolor rgb ink
set xlabel 'replica of the model (data rank)' textcolor rgb ink
set ylabel 'pipeline rank' textcolor rgb ink
unset key
set object 1 rectangle from slowest_data - 0.5, slowest_pipeline - 0.5 to slowest_data + 0.5, slowest_pipeline + 0.5 \
    front fs empty border rgb ink lw 1.5
set object 2 ellipse center slowest_data, slowest_pipeline size screen 0.03, screen 0.06 front fs empty border rgb ink lw 2
plot data using 'data_rank':'pipeline_rank':'lacks_percent' with image
